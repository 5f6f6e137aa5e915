import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'

const root = import.meta.dirname
const sources = readdirSync(root, { recursive: true, encoding: 'utf8' })
  .filter((path) => path.endsWith('.ts') && !path.endsWith('.test.ts'))
  .map((path) => ({ path, text: readFileSync(join(root, path), 'utf8') }))

test('no source of the protocol imports anything but its neighbours and @noble/hashes', () => {
  const imported = sources.flatMap(({ text }) =>
    [...text.matchAll(/^(?:[^/]*\bfrom|import)\s+'([^']+)'|\bimport\(([^)]*)\)/gm)].map(
      ([, specifier, dynamic]) => specifier ?? `import(${dynamic})`,
    ),
  )
  expect(imported.length).toBeGreaterThan(50)
  expect(
    imported.filter((specifier) => !/^(\.{1,2}\/[a-z0-9/.-]+\.ts|@noble\/hashes\/[a-z0-9]+\.js)$/.test(specifier)),
  ).toEqual([])
})

test('no source of the protocol reads a clock, chance, a network, or anything that only Node has', () => {
  const forbidden =
    /\b(Date|Math\.random|fetch|crypto|process|Buffer|setTimeout|setInterval|require|globalThis|performance)\b/
  const code = (text: string) => text.replace(/\/\*\*[\s\S]*?\*\//g, '')
  expect(sources.filter(({ text }) => forbidden.test(code(text))).map(({ path }) => path)).toEqual([])
})
