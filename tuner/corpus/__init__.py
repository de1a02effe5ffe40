"""What finished studies leave for others: small files, how alike hosts are, what studies prove together."""
