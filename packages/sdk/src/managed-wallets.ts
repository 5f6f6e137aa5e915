import { call, callUntyped, list } from './call.ts'
import type { operations } from './generated/openapi.ts'
import type { Body, Item, Query, ResponseBody } from './operations.ts'
import type { Listing, PageQuery } from './paging.ts'
import type { CallOptions, Send } from './transport.ts'

/** One wallet's side of a transfer. */
export type WalletTransaction = Item<operations['wallets.byo.transactions']>
export type TransactionQuery = Query<operations['wallets.byo.transactions']>
export type NewMasterWallet = Body<operations['wallets.master.create']>
export type MasterWallet = ResponseBody<operations['wallets.master.get']>
/** With `childAddressId`, the list has the wallet of that child address alone. */
export type MasterWalletQuery = Query<operations['wallets.master.list']>
export type MasterWalletChange = Body<operations['wallets.master.update']>
export type SweepRequest = Body<operations['wallets.master.sweep']>
export type Sweep = ResponseBody<operations['wallets.sweeps.get']>
export type SweepSummary = Item<operations['wallets.sweeps.list']>
export type NewChildAddresses = Body<operations['wallets.children.create']>
export type ChildAddress = ResponseBody<operations['wallets.children.get']>
export type ChildAddressChange = Body<operations['wallets.children.update']>
export type WalletPolicy = ResponseBody<operations['wallets.master.policy.get']>
export type PolicyDocument = Body<operations['wallets.master.policy.set']>
export type Balance = Item<operations['wallets.master.balances']>
export interface BalanceQuery {
  /** Adds `parts` to each balance: the amount that can be sent now, and those that are reserved or on hold. */
  readonly spendable?: boolean
}

const masters = '/wallet-infra/master-wallets'
const master = `${masters}/{id}` as const

/** The operations on managed wallets, whose keys the service keeps. */
export function masterWalletsOf(send: Send) {
  return {
    /** Creates a managed wallet, whose key the service stores. */
    create: (body: NewMasterWallet, options?: CallOptions): Promise<MasterWallet> =>
      call(send, 'POST', masters, { ...options, body }),
    /** Managed wallets, newest first. */
    list: (query?: MasterWalletQuery, options?: CallOptions): Listing<MasterWallet> =>
      list(send, masters, { ...options, query }),
    /** Returns a managed wallet. Throws `NotFoundError` for an unknown id. */
    get: (id: string, options?: CallOptions): Promise<MasterWallet> =>
      call(send, 'GET', master, { ...options, params: { id } }),
    /** The current balances of the wallet's tokens and coin, read from the chain: decimal amounts in whole tokens. */
    balances: (id: string, query?: BalanceQuery, options?: CallOptions): Promise<readonly Balance[]> =>
      callUntyped(send, 'GET', `${master}/balances`, { ...options, params: { id }, query }),
    /** Deposits and outgoing transactions of the wallet, newest first. */
    transactions: (id: string, query?: TransactionQuery, options?: CallOptions): Listing<WalletTransaction> =>
      list(send, `${master}/transactions`, { ...options, params: { id }, query }),
    /** Changes the name, metadata or automatic sweep of a wallet. Omitted members stay unchanged. */
    update: (id: string, body: MasterWalletChange, options?: CallOptions): Promise<MasterWallet> =>
      call(send, 'PATCH', master, { ...options, params: { id }, body }),
    /** Retires an empty wallet. Later deposits are still reported. */
    retire: (id: string, options?: CallOptions): Promise<void> =>
      call(send, 'DELETE', master, { ...options, params: { id } }),
    /** Reactivates a retired wallet. */
    restore: (id: string, options?: CallOptions): Promise<MasterWallet> =>
      call(send, 'POST', `${master}/restore`, { ...options, params: { id } }),
    /** The spend policy of the wallet and its children. */
    policy: {
      /** The spend policy of the wallet. */
      get: (id: string, options?: CallOptions): Promise<WalletPolicy> =>
        call(send, 'GET', `${master}/policy`, { ...options, params: { id } }),
      /** Sets the first policy, or one that is in no respect looser than the current one. */
      set: (id: string, body: PolicyDocument, options?: CallOptions): Promise<WalletPolicy> =>
        call(send, 'PUT', `${master}/policy`, { ...options, params: { id }, body }),
    },
    /** Starts a sweep of the children's balances to the master wallet. `sweeps.get` reports its progress. */
    sweep: (id: string, body: SweepRequest, options?: CallOptions): Promise<Sweep> =>
      callUntyped(send, 'POST', `${master}/sweep`, { ...options, params: { id }, body }),
  }
}

/** The operations on sweeps of master wallets. */
export function sweepsOf(send: Send) {
  return {
    /** Sweeps of the wallet, newest first. */
    list: (id: string, query?: PageQuery, options?: CallOptions): Listing<SweepSummary> =>
      list(send, `${master}/sweeps`, { ...options, params: { id }, query }),
    /** Returns a sweep with its transfers. Throws `NotFoundError` for an unknown id. */
    get: (id: string, sweepId: string, options?: CallOptions): Promise<Sweep> =>
      call(send, 'GET', `${master}/sweeps/{sweepId}`, { ...options, params: { id, sweepId } }),
  }
}

/** The operations on addresses derived from a master wallet. */
export function childAddressesOf(send: Send) {
  return {
    /** Creates one child address, or `count` of them, by index. */
    create: <B extends NewChildAddresses>(
      id: string,
      body: B,
      options?: CallOptions,
    ): Promise<B extends { readonly count: number } ? ChildAddress[] : ChildAddress> =>
      callUntyped(send, 'POST', `${master}/child-addresses`, { ...options, params: { id }, body }),
    /** Child addresses of the wallet, newest first. */
    list: (id: string, query?: PageQuery, options?: CallOptions): Listing<ChildAddress> =>
      list(send, `${master}/child-addresses`, { ...options, params: { id }, query }),
    /** Returns a child address. Throws `NotFoundError` for an unknown id. */
    get: (id: string, cad: string, options?: CallOptions): Promise<ChildAddress> =>
      call(send, 'GET', `${master}/child-addresses/{cad}`, { ...options, params: { id, cad } }),
    /** Changes the name or metadata of a child address. Omitted members stay unchanged. */
    update: (id: string, cad: string, body: ChildAddressChange, options?: CallOptions): Promise<ChildAddress> =>
      call(send, 'PATCH', `${master}/child-addresses/{cad}`, { ...options, params: { id, cad }, body }),
    /** The current balances of the child address, read from the chain: decimal amounts in whole tokens. */
    balances: (id: string, cad: string, query?: BalanceQuery, options?: CallOptions): Promise<readonly Balance[]> =>
      callUntyped(send, 'GET', `${master}/child-addresses/{cad}/balances`, { ...options, params: { id, cad }, query }),
    transactions: (
      id: string,
      cad: string,
      query?: TransactionQuery,
      options?: CallOptions,
    ): Listing<WalletTransaction> =>
      list(send, `${master}/child-addresses/{cad}/transactions`, { ...options, params: { id, cad }, query }),
  }
}
