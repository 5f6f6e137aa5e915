import { chmodSync, mkdtempSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { removeDataDir } from './data-dir.ts'
import { type Dev, startDev } from './dev.ts'
import type { DevOptions } from './dev-ground.ts'

type TemporaryOptions = Partial<Omit<DevOptions, 'dataDir'>>

/** A separate service on free ports, with all chains by default. stop() removes everything. */
export async function startTemporaryDev(options: TemporaryOptions = {}): Promise<Dev> {
  const dataDir = mkdtempSync(path.join(os.tmpdir(), 'purser-dev-'))
  chmodSync(dataDir, 0o711) // the account that runs PostgreSQL must be able to pass through
  try {
    const dev = await startDev({ port: 0, chains: true, keepsChains: false, ...options, dataDir })
    return { ...dev, stop: () => dev.stop().finally(() => removeDataDir(dataDir)) }
  } catch (error) {
    removeDataDir(dataDir)
    throw error
  }
}
