"""Findings, plans and reports as text: terminal, JSON, Markdown, SVG. Nothing here decides or reads the machine."""
