"""The lab: local pages in the browser that show the bias, compare estimators and follow runs."""
