"""The paper's figures as data, and the claims they carry."""
