-- The orders of bridge partners that transfers pay for. A partner fills an order once, so an order pays for one transfer.
create table partner_orders (
  order_id text primary key,
  transfer_id text not null
);
