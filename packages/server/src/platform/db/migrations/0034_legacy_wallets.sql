-- The legacy organisation wallet: a managed wallet of which a tenant has one, that no plan counts and no list of managed wallets shows.

-- The coin that it was made for; null for every other wallet.
alter table master_wallets add column legacy_coin text check (legacy_coin in ('USDC_E', 'USDC', 'USDT'));
create unique index master_wallets_legacy on master_wallets (organisation_id, environment) where legacy_coin is not null;
