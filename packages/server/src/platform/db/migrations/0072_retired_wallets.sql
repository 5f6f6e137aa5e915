-- What the owner of a master wallet keeps with it, and when it was retired; a retired one stays watched, and its account is never given again.

alter table master_wallets add column metadata jsonb not null default '{}';
alter table master_wallets add column retired_at timestamptz;
