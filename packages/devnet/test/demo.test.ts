import { spawn } from 'node:child_process'
import { chmodSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { afterAll, expect, test } from 'vitest'

const script = path.join(import.meta.dirname, '..', 'src', 'demo.ts')

const temporary = mkdtempSync(path.join(os.tmpdir(), 'purser-demo-'))
chmodSync(temporary, 0o711)
afterAll(() => rmSync(temporary, { recursive: true, force: true }))

test('every step of the demo passes, it prints no secret, exits with 0 and leaves no file behind', async () => {
  const { exitCode, output } = await runDemo({ TMPDIR: temporary })
  expect(output).not.toContain('✗')
  for (const reported of [
    '✓ 10. A replay of the signature is refused',
    '✓ 12. And on Tempo, to the other wallet',
    '✓ 17. Chain and log agree: three calls, one payment',
    '✓ 19. Through purser listen the provider',
    '✓ 20. Money comes to its own wallet, to a managed one',
    '✓ 21. What its treasury holds it bridges to Ethereum',
    '✓ 23. It withdraws everything from Ethereum to its bank',
    '✓ 26. The agent checks the proof offline',
    '✓ 28. A changed name or bit is found',
  ])
    expect(output).toContain(reported)
  expect(output).toMatch(
    /60 USDC, pending in block \d+ of base-sepolia; transfer\.completed: 59\.94 USDC on eth-sepolia/,
  )
  expect(output).toMatch(
    /wdr_\w+: 59\.94 USDC in block \d+ of eth-sepolia; withdrawal\.completed: 59\.94 USD to the bank/,
  )
  expect(output, 'the number of the bank account').not.toContain('123456789')
  expect(output).not.toMatch(/sess_\w+\.|vat_|svc_test|whsec_/)
  expect(output.trimEnd().endsWith('Every step passed.')).toBe(true)
  expect(exitCode).toBe(0)
  expect(readdirSync(temporary)).toEqual([])
})

test('a step that fails ends the demo with 1 and is named', async () => {
  const { exitCode, output } = await runDemo({ TMPDIR: '/dev/null' })
  expect(output).toContain('✗ 1.')
  expect(output).toContain('A step failed: step 1')
  expect(exitCode).toBe(1)
})

function runDemo(env: Readonly<Record<string, string>>): Promise<{ exitCode: number | null; output: string }> {
  const child = spawn(process.execPath, [script], {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text
    })
  }
  return new Promise((resolve) => child.once('close', (exitCode) => resolve({ exitCode, output })))
}
