/** The page of a wallet; none for a child address, which its wallet shows. */
export function walletPath(walletId: string): string | undefined {
  return walletId.startsWith('cad_') ? undefined : `/wallets/${walletId}`
}
