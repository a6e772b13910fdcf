"""Fourth step too: the answer rankers capsules are compared with on TREC QA; one small file each."""
