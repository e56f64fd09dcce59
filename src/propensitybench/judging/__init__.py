"""What readers say of transcripts: questions, judges, people, and how far they can be believed."""
