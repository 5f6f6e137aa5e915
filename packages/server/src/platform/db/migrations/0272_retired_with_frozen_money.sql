-- Whether a managed wallet had frozen money when it was retired. Money that is released later must be moved before the organisation is deleted.
alter table master_wallets add column if not exists retired_with_frozen boolean not null default false;
