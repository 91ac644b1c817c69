"""The paper's figures drawn, and the page of a reproduction."""
