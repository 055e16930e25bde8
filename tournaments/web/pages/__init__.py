"""The pages for students and visitors."""
