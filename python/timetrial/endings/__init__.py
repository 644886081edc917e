"""What shows how a contender ended: whose memory was spent, where its threads stood, what it said last."""
