import { call, path } from './call.ts'
import { type Listing, listing, type PageQuery } from './paging.ts'
import type { CallOptions, Send } from './transport.ts'

export interface NewByoWallet {
  /** EVM address; mixed case must be a correct EIP-55 checksum. */
  readonly address: string
  readonly chain: string
  readonly supportedTokens: readonly string[]
  readonly name?: string
  readonly metadata?: Readonly<Record<string, unknown>>
}

export interface ByoWallet {
  readonly id: string
  readonly address: string
  readonly chain: string
  readonly name: string | null
  readonly isActive: boolean
  readonly amlStatus: 'pending' | 'clear' | 'flagged'
  readonly supportedTokens: readonly string[]
  readonly createdAt: string
}

/** The operations on wallets that the customer owns. */
export function walletsOf(send: Send) {
  return {
    byo: {
      create: (body: NewByoWallet, options?: CallOptions) =>
        call<ByoWallet>(send, 'POST', '/wallet-infra/byo-wallets', { ...options, body }),
      list: (query?: PageQuery, options?: CallOptions): Listing<ByoWallet> =>
        listing(send, '/wallet-infra/byo-wallets', query, options),
      get: (walletId: string, options?: CallOptions) =>
        call<ByoWallet>(send, 'GET', path`/wallet-infra/byo-wallets/${walletId}`, options),
      delete: (walletId: string, options?: CallOptions) =>
        call<void>(send, 'DELETE', path`/wallet-infra/byo-wallets/${walletId}`, options),
    },
  }
}

export interface Chain {
  readonly name: string
  readonly [member: string]: unknown
}

/** What the service knows of chains and their tokens. */
export function chainsOf(send: Send) {
  return {
    list: (query?: PageQuery, options?: CallOptions): Listing<Chain> => listing(send, '/chains', query, options),
  }
}
