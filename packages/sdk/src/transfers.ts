import { call, list } from './call.ts'
import type { operations } from './generated/openapi.ts'
import type { Body, Query, ResponseBody } from './operations.ts'
import type { Listing } from './paging.ts'
import type { CallOptions, Send } from './transport.ts'

export type NewTransfer = Body<operations['transfers.create']>
export type Transfer = ResponseBody<operations['transfers.get']>
export type TransferQuote = ResponseBody<operations['transfers.quote']>
/** `fromWalletId` restricts the list to transfers of one wallet, `metadata` to those with one member, such as `{ orderId: '42' }`. */
export type TransferQuery = Query<operations['transfers.list']>

/** The operations on transfers out of managed wallets. */
export function transfersOf(send: Send) {
  return {
    /**
     * Creates a transfer and waits up to 20 seconds for a block. Repeating the call with the same `idempotencyKey`
     * never sends twice.
     */
    create: (body: NewTransfer, options?: CallOptions): Promise<Transfer> =>
      call(send, 'POST', '/wallet-infra/transfer', { ...options, body }),
    /** Returns the cost and route of a transfer. Nothing moves. */
    quote: (body: NewTransfer, options?: CallOptions): Promise<TransferQuote> =>
      call(send, 'POST', '/wallet-infra/transfer/quote', { ...options, body }),
    /** Transfers, newest first. */
    list: (query?: TransferQuery, options?: CallOptions): Listing<Transfer> =>
      list(send, '/wallet-infra/transfers', { ...options, query }),
    /** Returns a transfer. Throws `NotFoundError` for an unknown id. */
    get: (id: string, options?: CallOptions): Promise<Transfer> =>
      call(send, 'GET', '/wallet-infra/transfers/{id}', { ...options, params: { id } }),
  }
}
