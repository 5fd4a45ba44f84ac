"""Programs of the dialect lenses: their topics found, checked as a whole, and begun as queries."""
