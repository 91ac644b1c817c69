"""The numbers behind each page: one module for each, with the functions that its requests call."""
