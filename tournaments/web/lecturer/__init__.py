"""The pages for lecturers and admins; ``routes`` lists them."""
