"""Tests of what operators deploy: the image of docs/deploy, built from Debian's packages, run without root.

Start with ``test_image.py``; ``podman.py`` runs the containers.
"""
