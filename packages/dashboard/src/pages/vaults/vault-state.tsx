import type { Vault, VaultState } from '@purser/sdk'
import { count } from '../../ui/format.ts'
import { StateBadge } from '../../ui/state.tsx'

/** The title of a vault: its description. Anyone who can write to the vault may have chosen it. */
export function vaultName({ description }: Pick<Vault, 'description'>): string {
  return description === null || description === '' ? 'Vault without a description' : description
}

/** Whether a vault still takes documents and files. A persisted vault that was never sealed does. */
export function isOpen({ sealedAt }: Pick<Vault, 'sealedAt'>): boolean {
  return sealedAt === null
}

export function VaultBadge({ vault }: { vault: Vault }) {
  if (isOpen(vault)) return <StateBadge state="pending">Open</StateBadge>
  return <StateBadge state="settled">Sealed</StateBadge>
}

/** Describes the content of a vault and whether it can still change, in one sentence. */
export function vaultWords(vault: VaultState): string {
  const contents = `${count(vault.documents.length, 'document')} and ${count(vault.files.length, 'file')}`
  if (!isOpen(vault)) return `Sealed with ${contents}. Nothing in it can change.`
  return vault.documents.length + vault.files.length === 0
    ? 'Empty so far. New items appear here live.'
    : `Open, with ${contents} so far. New items appear here live.`
}
