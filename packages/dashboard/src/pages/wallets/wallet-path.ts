/** The page of a wallet or child address. */
export function walletPath(walletId: string): string {
  return `/wallets/${walletId}`
}
