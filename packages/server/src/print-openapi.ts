import { readFile, writeFile } from 'node:fs/promises'
import { openApi } from './operations.ts'

const file = new URL('../../../openapi.json', import.meta.url)
const text = `${JSON.stringify(openApi, null, 2)}\n`

if (process.argv.includes('--check')) {
  const committed = await readFile(file, 'utf8').catch(() => '')
  if (committed !== text) {
    console.error('openapi.json is out of date. Run: npm run openapi')
    process.exitCode = 1
  }
} else {
  await writeFile(file, text)
}
