-- Each network finds its due automatic sweeps by itself.
create index concurrently if not exists master_wallets_to_sweep_by_network on master_wallets (network, auto_sweep_due_at) where auto_sweep is not null;
