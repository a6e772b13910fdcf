"""The command line: one small file per command; torch is only imported when there is work to do."""
