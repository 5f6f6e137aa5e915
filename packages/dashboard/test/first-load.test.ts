import { existsSync, readFileSync, statSync } from 'node:fs'
import path from 'node:path'
import { beforeAll, expect, test } from 'vitest'
import { buildIfNeeded } from './build-if-needed.ts'

const assets = path.join(import.meta.dirname, '..', 'dist', 'assets')
const firstLoadBytesMax = 200_000

beforeAll(buildIfNeeded)

/** The files and all that they import at once, which is what a browser fetches before it shows anything. */
function withImports(files: readonly string[], seen = new Set<string>()): ReadonlySet<string> {
  for (const file of files.filter((one) => !seen.has(one))) {
    seen.add(file)
    const script = readFileSync(path.join(assets, file), 'utf8')
    withImports(
      [...script.matchAll(/(?:\bfrom|\bimport)\s*["'`]\.\/([^"'`]+\.js)["'`]/g)].map(([, name = '']) => name),
      seen,
    )
  }
  return seen
}

/** What the service sends to a browser that takes Brotli. */
function sentBytes(file: string): number {
  const compressed = path.join(assets, `${file}.br`)
  return statSync(existsSync(compressed) ? compressed : path.join(assets, file)).size
}

test('the first load of Home is at most 200 KB of compressed script', () => {
  const html = readFileSync(path.join(assets, '..', 'index.html'), 'utf8')
  const started = [...html.matchAll(/assets\/([^"]+\.js)"/g)].map(([, name = '']) => name)
  const files = [...withImports(started)]
  // The code of Home is among them.
  expect(
    files.some((file) => readFileSync(path.join(assets, file), 'utf8').includes('Nothing needs your attention')),
  ).toBe(true)
  const bytes = files.reduce((sum, file) => sum + sentBytes(file), 0)
  expect(bytes, files.join(' ')).toBeLessThan(firstLoadBytesMax)
  // React alone is more than this: a smaller sum is one that missed its files.
  expect(bytes).toBeGreaterThan(50_000)
})
