import { readFile, writeFile } from 'node:fs/promises'
import { toolsOf } from './print-tool.ts'

const document = new URL('../../../openapi.json', import.meta.url)
const file = new URL('./generated/tools.ts', import.meta.url)
const tools = toolsOf(JSON.parse(await readFile(document, 'utf8')))
const text = [
  '// Generated from openapi.json by `npm run openapi`; `npm run check` fails when it is out of date.',
  "import type { Tool } from '../tool.ts'",
  '',
  `export const tools: readonly Tool[] = ${JSON.stringify(tools, null, 2)}`,
  '',
].join('\n')

if (process.argv.includes('--check')) {
  const committed = await readFile(file, 'utf8').catch(() => '')
  if (committed !== text) {
    console.error('packages/mcp/src/generated/tools.ts does not match openapi.json. Run: npm run openapi')
    process.exitCode = 1
  }
} else {
  await writeFile(file, text)
}
