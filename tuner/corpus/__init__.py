"""What finished studies leave for others: small files, how alike their hosts are, what they prove together."""
