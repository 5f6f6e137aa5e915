import { readFile, writeFile } from 'node:fs/promises'
import { operationsOf } from './print-operation.ts'

const document = new URL('../../../openapi.json', import.meta.url)
const file = new URL('./generated/operations.ts', import.meta.url)
const operations = operationsOf(JSON.parse(await readFile(document, 'utf8')))
const text = [
  '// Generated from openapi.json by `npm run openapi`; `npm run check` fails when it is out of date.',
  "import type { ApiOperation } from '../operation.ts'",
  '',
  `export const apiOperations: readonly ApiOperation[] = ${JSON.stringify(operations, null, 1)}`,
  '',
].join('\n')

if (process.argv.includes('--check')) {
  const committed = await readFile(file, 'utf8').catch(() => '')
  if (committed !== text) {
    console.error('packages/cli/src/generated/operations.ts does not match openapi.json. Run: npm run openapi')
    process.exitCode = 1
  }
} else {
  await writeFile(file, text)
}
