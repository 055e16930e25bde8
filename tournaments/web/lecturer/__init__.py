"""The pages for lecturers and admins; ``routes`` lists them, and ``forms`` makes inputs from models."""
