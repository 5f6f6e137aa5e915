-- What Tempo's own transactions (type 0x76) carry beyond one call whose fee is paid in the token that it calls.

alter table chain_transactions
  -- The token that the fee is paid in, EIP-55 checksummed; null: the one that is called, or the network's coin.
  add column fee_token text,
  -- Calls that run before it in the same transaction, all of them or none: [{ to, value, data }] in hexadecimal; null for none.
  add column calls_before jsonb,
  -- Whether the lanes' sponsor pays the fee in the sender's stead.
  add column is_sponsored boolean not null default false,
  add constraint chain_transactions_sponsor_pays check (not is_sponsored or fee_token is not null);
