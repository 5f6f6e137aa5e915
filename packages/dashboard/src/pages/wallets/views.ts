import type { OpenSearch } from '../../ui/search.ts'

/** The lists of a wallet beside all its deposits and transfers. */
export const walletViews = ['reserved', 'on-hold', 'children', 'sweeps'] as const

export type WalletView = (typeof walletViews)[number]

/** `open` is the sweep that is open in the sheet. */
export interface WalletSearch extends OpenSearch {
  readonly view?: WalletView
}
