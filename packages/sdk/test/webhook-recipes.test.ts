/**
 * The functions of docs/webhooks.md that verify a delivery without the SDK, as they stand on the page. Python and Go run where the
 * machine has them.
 */

import { execFile, spawnSync } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { signWebhook } from '@purser/protocol'
import { afterAll, beforeAll, expect, test } from 'vitest'

interface Delivery {
  readonly name: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
  readonly secret: string
  readonly isValid: boolean
}

const run = promisify(execFile)
const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`
const other = `whsec_${Buffer.alloc(32, 8).toString('base64')}`
const hasPython = spawnSync('python3', ['--version']).status === 0
const hasGo = spawnSync('go', ['version']).status === 0

let folder = ''
let page = ''
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'purser-recipes-'))
  page = await readFile(new URL('../../../docs/webhooks.md', import.meta.url), 'utf8')
})
afterAll(() => rm(folder, { recursive: true }))

test('the function in TypeScript accepts what the service signed, and nothing else', async () => {
  const harness = [
    "import { readFileSync } from 'node:fs'",
    "const deliveries = JSON.parse(readFileSync('deliveries.json', 'utf8'))",
    'console.log(JSON.stringify(deliveries.map((d) => isSigned(d.headers, Buffer.from(d.body), d.secret))))',
  ]
  await expectRecipe('recipe.ts', `${block('ts')}\n${harness.join('\n')}\n`, process.execPath, ['recipe.ts'])
})

test.skipIf(!hasPython)('the function in Python accepts what the service signed, and nothing else', async () => {
  const harness = [
    'import json',
    'with open("deliveries.json") as file:',
    '    deliveries = json.load(file)',
    'print(json.dumps([is_signed(d["headers"], d["body"].encode(), d["secret"]) for d in deliveries]))',
  ]
  await expectRecipe('recipe.py', `${block('python')}\n\n${harness.join('\n')}\n`, 'python3', ['recipe.py'])
})

test.skipIf(!hasGo)('the function in Go accepts what the service signed, and nothing else', async () => {
  const main = `package main

import (
	"encoding/json"
	"net/http"
	"os"
)

func main() {
	var deliveries []struct {
		Headers map[string]string
		Body    string
		Secret  string
	}
	data, _ := os.ReadFile("deliveries.json")
	if err := json.Unmarshal(data, &deliveries); err != nil {
		panic(err)
	}
	results := []bool{}
	for _, d := range deliveries {
		headers := http.Header{}
		for name, value := range d.Headers {
			headers.Set(name, value)
		}
		results = append(results, IsSigned(headers, []byte(d.Body), d.Secret))
	}
	json.NewEncoder(os.Stdout).Encode(results)
}
`
  await writeFile(join(folder, 'main.go'), main)
  const recipe = block('go').replace('package webhook', 'package main')
  await expectRecipe('recipe.go', recipe, 'go', ['run', 'main.go', 'recipe.go'])
})

/** Runs a recipe on every delivery, and expects what it prints: a JSON list of booleans. */
async function expectRecipe(file: string, source: string, program: string, args: readonly string[]): Promise<void> {
  const cases = deliveries()
  await writeFile(join(folder, file), source)
  await writeFile(join(folder, 'deliveries.json'), JSON.stringify(cases))
  const { stdout } = await run(program, args, { cwd: folder })
  const results: unknown = JSON.parse(stdout)
  expect(results).toEqual(cases.map(({ isValid }) => isValid))
}

function deliveries(): Delivery[] {
  const now = Math.floor(Date.now() / 1000)
  const body = '{"eventId":"evt_1","type":"webhook.test","payload":{"name":"Zoë ☕"}}'
  const sign = (timestamp: number, secrets: readonly string[]) => ({
    ...signWebhook({ id: 'evt_1', timestamp, body: Buffer.from(body) }, { secrets }),
  })
  const good = sign(now, [secret])
  const of = (name: string, isValid: boolean, headers: Readonly<Record<string, string>>, sent = body): Delivery => ({
    name,
    headers,
    body: sent,
    secret,
    isValid,
  })
  return [
    of('signed', true, good),
    of('signed with the new and the old secret of a rotation', true, sign(now, [other, secret])),
    of('beside signatures of other versions', true, {
      ...good,
      'webhook-signature': `v1a,AAAA v2,BBBB ${good['webhook-signature']}`,
    }),
    of('four minutes old', true, sign(now - 240, [secret])),
    of('six minutes old', false, sign(now - 360, [secret])),
    of('six minutes in the future', false, sign(now + 360, [secret])),
    of('a changed body', false, good, body.replace('test', 'tess')),
    of('another id', false, { ...good, 'webhook-id': 'evt_2' }),
    of('another timestamp', false, { ...good, 'webhook-timestamp': String(now - 1) }),
    of('another secret', false, sign(now, [other])),
    of('another version', false, { ...good, 'webhook-signature': good['webhook-signature'].replace('v1,', 'v2,') }),
    of('a timestamp that is no number', false, { ...good, 'webhook-timestamp': 'now' }),
    of('an empty signature', false, { ...good, 'webhook-signature': '' }),
    of('no headers', false, {}),
  ]
}

/** The code of the section's only block in this language. */
function block(language: string): string {
  const section = page.split('## Verify without the SDK')[1]?.split('\n## ')[0] ?? ''
  const found = section.split(`\`\`\`${language}\n`)[1]?.split('\n```')[0]
  if (found === undefined) throw new Error(`no block in ${language}`)
  return found
}
