-- A transfer ends when its block can no longer be undone, and one whose nonce another transaction used ends when it is known what moved.

alter table transfers
  -- Since when nobody can say whether its money moved: its nonce is used by a transaction that is not its own, and its call was not found on
  -- chain. Nothing of it is released; an operator ends it.
  add column unknown_at timestamptz,
  -- The transaction that decides it and its block, at the payment depth and not yet final.
  add column settled_by text references chain_transactions (id),
  add column settled_block_hash text,
  -- Why it fails, where that block says so; null where the money moved.
  add column settled_fault text,
  -- When that block is looked at again.
  add column finality_at timestamptz;
create index transfers_unknown on transfers (unknown_at) where unknown_at is not null and ended_at is null;
create index transfers_to_finalize on transfers (from_network, finality_at) where finality_at is not null;
