"""The paper's figures, and the report page of a reproduction."""
