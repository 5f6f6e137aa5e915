import { type Closing, createClosing } from './closing.ts'
import { benchVaultFiles, type FilesPlan, fullFiles, largeFiles, quickFiles } from './vault-files.ts'
import { benchVaultStreams, fullStreams, quickStreams, type StreamsPlan } from './vault-streams.ts'
import { benchVaultWrites, fullWrites, quickWrites, type WritesPlan } from './vault-writes.ts'

export interface VaultsPlan {
  readonly files: FilesPlan
  readonly writes: WritesPlan
  readonly streams: StreamsPlan
}

export const fullVaults: VaultsPlan = { files: fullFiles, writes: fullWrites, streams: fullStreams }
/** The full one, with files of 1 GB too. */
export const largeVaults: VaultsPlan = { ...fullVaults, files: largeFiles }
export const quickVaults: VaultsPlan = { files: quickFiles, writes: quickWrites, streams: quickStreams }

export const vaultParts = ['files', 'writes', 'streams'] as const
export type VaultPart = (typeof vaultParts)[number]

/** Measures vaults, part by part, each with a database and processes of its own, which end before the next begins. */
export async function benchVaults(plan: VaultsPlan, closing: Closing, parts: readonly VaultPart[]): Promise<number> {
  const benches = {
    files: (own: Closing) => benchVaultFiles(plan.files, own),
    writes: (own: Closing) => benchVaultWrites(plan.writes, own),
    streams: (own: Closing) => benchVaultStreams(plan.streams, own),
  }
  let wrong = 0
  for (const part of parts) {
    const own = createClosing()
    const end = closing.add(() => own.all())
    try {
      wrong += await benches[part](own)
    } finally {
      await end()
    }
  }
  return wrong
}
