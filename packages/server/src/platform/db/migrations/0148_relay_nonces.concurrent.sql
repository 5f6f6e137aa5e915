create unique index concurrently if not exists relays_sent_by_nonce on relays (network, nonce_space, signer, nonce) where not is_watched;
create unique index concurrently if not exists relays_watched_by_nonce on relays (network, nonce_space, signer, nonce) where is_watched;
