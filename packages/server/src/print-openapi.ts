import { readFile, writeFile } from 'node:fs/promises'
import { makeOpenApi } from './operations.ts'

const file = new URL('../../../openapi.json', import.meta.url)
const text = `${linesOf(makeOpenApi(), 3)}\n`

/** JSON with one line for each operation and each component: small, and a change of one of them is a change of one line. */
function linesOf(value: unknown, depth: number): string {
  if (depth === 0 || typeof value !== 'object' || value === null || Array.isArray(value)) return JSON.stringify(value)
  const members = Object.entries(value).map(([name, inner]) => `${JSON.stringify(name)}:${linesOf(inner, depth - 1)}`)
  return members.length === 0 ? '{}' : `{\n${members.join(',\n')}\n}`
}

if (process.argv.includes('--check')) {
  const committed = await readFile(file, 'utf8').catch(() => '')
  if (committed !== text) {
    console.error('openapi.json is out of date. Run: npm run openapi')
    process.exitCode = 1
  }
} else {
  await writeFile(file, text)
}
