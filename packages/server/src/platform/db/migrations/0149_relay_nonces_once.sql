-- Replaced by the two indexes of 0148. The index of relays that are sent takes the constraint's name, which processes of the version before know.
alter table relays drop constraint relays_network_nonce_space_signer_nonce_key;
alter index relays_sent_by_nonce rename to relays_network_nonce_space_signer_nonce_key;
