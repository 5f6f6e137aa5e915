-- Sweeps on Tempo that were tried the fewest times come first, so that one that always fails keeps no other waiting.
create index sweep_transfers_to_try on sweep_transfers (network, attempt, created_at) where status = 'planned';

-- Whoever takes the nonces of several accounts locks their rows in one order. Some sort the accounts before they ask, by their code points;
-- a database may be set up to sort letters as a dictionary does, and addresses have letters of both cases.
alter table lanes
  alter column network type text collate "C",
  alter column sender type text collate "C";
