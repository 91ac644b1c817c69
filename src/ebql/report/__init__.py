"""What a person sees: pictures and pages."""
