import { existsSync, mkdirSync, readFileSync, realpathSync, rmSync } from 'node:fs'
import path from 'node:path'
import { takeLock } from './lock.ts'

/** The paths under a data directory. */
export interface DataDir {
  readonly path: string
  readonly devFile: string
  readonly envFile: string
  readonly keyFile: string
  readonly filesDir: string
  readonly postgres: string
  chainState(network: string): string
  release(): void
}

/**
 * Makes the directory when it is missing and locks it for this process: two services on one directory would end each
 * other's chains. Throws an InUseError when another process has it.
 */
export function openDataDir(dir: string): DataDir {
  const real = make(dir)
  const lock = takeLock(path.join(real, 'lock'), real)
  const places = placesIn(real)
  mkdirSync(places.filesDir, { recursive: true, mode: 0o700 })
  return { ...places, release: lock.release }
}

/** Deletes a directory that no process runs on, and the database outside it, if there is one. */
export function removeDataDir(dir: string): void {
  const pointer = path.join(placesIn(dir).postgres, 'cluster-location')
  if (existsSync(pointer)) {
    const cluster = readFileSync(pointer, 'utf8').trim()
    for (const place of [cluster, `${cluster}.new`]) rmSync(place, { recursive: true, force: true })
  }
  rmSync(dir, { recursive: true, force: true })
}

function make(dir: string): string {
  try {
    mkdirSync(dir, { recursive: true })
    return realpathSync(dir)
  } catch (cause) {
    throw new Error(`The data directory ${dir} cannot be made. Set DATA_DIR to another place.`, { cause })
  }
}

function placesIn(dir: string) {
  return {
    path: dir,
    devFile: path.join(dir, 'dev.json'),
    envFile: path.join(dir, 'dev.env'),
    keyFile: path.join(dir, 'key-encryption-key'),
    filesDir: path.join(dir, 'files'),
    postgres: path.join(dir, 'postgres'),
    chainState: (network: string) => path.join(dir, 'chains', `${network}.json`),
  }
}
