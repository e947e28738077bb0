"""The run: launching jobs and watching them. Not built yet; its rooms come with their own change."""
