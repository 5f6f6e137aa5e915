import { call, list } from './call.ts'
import type { operations } from './generated/openapi.ts'
import { legacyWalletOf } from './legacy-wallet.ts'
import {
  type Balance,
  childAddressesOf,
  masterWalletsOf,
  sweepsOf,
  type TransactionQuery,
  type WalletTransaction,
} from './managed-wallets.ts'
import type { Body, Item, ResponseBody } from './operations.ts'
import type { Listing, PageQuery } from './paging.ts'
import type { CallOptions, Send } from './transport.ts'

export type NewByoWallet = Body<operations['wallets.byo.create']>
export type ByoWalletChange = Body<operations['wallets.byo.update']>
export type ByoWallet = ResponseBody<operations['wallets.byo.get']>
export type RescanRequest = Body<operations['wallets.deposits.rescan']>
type PayBody = Body<operations['wallets.pay']>
/** A payment of a 402 that the caller has received. */
export type NewWalletPayment = Omit<PayBody, UrlMember | 'challenge'> & Required<Pick<PayBody, 'challenge'>>
type UrlMember = 'url' | 'method' | 'headers' | 'body' | 'bodyEncoding'
/** A payment of a URL: the service fetches it, and pays if the response is a 402. */
export type NewUrlPayment = Omit<PayBody, 'url' | 'challenge'> & { readonly url: string }
export type WalletPayment = Exclude<ResponseBody<operations['wallets.pay']>, { readonly id: null }>
/** A payment with the seller's response, or with `id: null` the response of a URL that cost nothing. */
export type UrlPayment = ResponseBody<operations['wallets.pay']>
export type HoldSummary = ResponseBody<operations['wallets.holds.summary']>
export type RescanResult = ResponseBody<operations['wallets.deposits.rescan']>

/** The operations on BYO wallets and on managed wallets. */
export function walletsOf(send: Send) {
  return {
    master: masterWalletsOf(send),
    children: childAddressesOf(send),
    sweeps: sweepsOf(send),
    legacy: legacyWalletOf(send),
    /**
     * Pays a 402 from a managed wallet: returns the header field to send. `credential` is null while the payment waits
     * for an approval. Repeating the call with the same `idempotencyKey` returns the same credential.
     */
    pay: (body: NewWalletPayment, options?: CallOptions): Promise<WalletPayment> =>
      call(send, 'POST', '/wallet-infra/pay', { ...options, body }) as Promise<WalletPayment>,
    /**
     * Fetches a URL through the service and pays a 402 from a managed wallet, in up to 75 seconds. Send your own
     * `idempotencyKey`: a repeat pays nothing.
     * `response` is what the seller responded, which is untrusted.
     */
    payUrl: (body: NewUrlPayment, options?: CallOptions): Promise<UrlPayment> =>
      call(send, 'POST', '/wallet-infra/pay', { ...options, body }),
    byo: {
      /** Registers a receiving address whose key you keep. */
      create: (body: NewByoWallet, options?: CallOptions): Promise<ByoWallet> =>
        call(send, 'POST', '/wallet-infra/byo-wallets', { ...options, body }),
      /** BYO wallets, newest first. */
      list: (query?: PageQuery, options?: CallOptions): Listing<ByoWallet> =>
        list(send, '/wallet-infra/byo-wallets', { ...options, query }),
      /** Returns a BYO wallet. Throws `NotFoundError` for an unknown id. */
      get: (id: string, options?: CallOptions): Promise<ByoWallet> =>
        call(send, 'GET', '/wallet-infra/byo-wallets/{id}', { ...options, params: { id } }),
      /** Changes the name or metadata of a BYO wallet. Omitted members stay unchanged. */
      update: (id: string, body: ByoWalletChange, options?: CallOptions): Promise<ByoWallet> =>
        call(send, 'PATCH', '/wallet-infra/byo-wallets/{id}', { ...options, params: { id }, body }),
      /** Stops the detection of deposits at a BYO wallet. Money at its address is not affected. */
      delete: (id: string, options?: CallOptions): Promise<void> =>
        call(send, 'DELETE', '/wallet-infra/byo-wallets/{id}', { ...options, params: { id } }),
      /** The current balances of a BYO wallet, read from the chain: decimal amounts in whole tokens. */
      balances: (id: string, options?: CallOptions): Promise<readonly Balance[]> =>
        call(send, 'GET', '/wallet-infra/byo-wallets/{id}/balances', { ...options, params: { id } }),
      /** Detected token transfers to and from a BYO wallet, newest first. */
      transactions: (id: string, query?: TransactionQuery, options?: CallOptions): Listing<WalletTransaction> =>
        list(send, '/wallet-infra/byo-wallets/{id}/transactions', { ...options, params: { id }, query }),
    },
    holds: {
      /** Sums what screening keeps from leaving the managed wallets and child addresses. */
      summary: (options?: CallOptions): Promise<HoldSummary> =>
        call(send, 'GET', '/wallet-infra/holds', { ...options }),
    },
    deposits: {
      /** Scans one transaction for deposits, including deposits from before the wallet was registered. */
      rescan: (body: RescanRequest, options?: CallOptions): Promise<RescanResult> =>
        call(send, 'POST', '/wallet-infra/deposits/rescan', { ...options, body }),
    },
  }
}

export type Chain = Item<operations['chains.list']>
export type ChainName = Chain['name']
export type Token = Item<operations['chains.tokens']>

/** The operations on chains and their tokens. */
export function chainsOf(send: Send) {
  return {
    /** The chains that the calling key can use. */
    list: (query?: PageQuery, options?: CallOptions): Listing<Chain> =>
      list(send, '/wallet-infra/chains', { ...options, query }),
    /** The supported tokens of a chain. */
    tokens: (chain: ChainName, query?: PageQuery, options?: CallOptions): Listing<Token> =>
      list(send, '/wallet-infra/chains/{chain}/tokens', { ...options, params: { chain }, query }),
  }
}
