import { execFile } from 'node:child_process'
import path from 'node:path'
import { expect, test } from 'vitest'
import { program } from './stage.ts'

const bin = path.resolve(import.meta.dirname, '../../../node_modules/.bin')

function run(args: readonly string[], place: string): Promise<{ readonly code: unknown; readonly output: string }> {
  return new Promise((resolve) => {
    execFile(process.execPath, [program, ...args], { env: { PATH: place } }, (error, stdout, stderr) =>
      resolve({ code: error === null ? 0 : error.code, output: stdout + stderr }),
    )
  })
}

test("purser admin runs the server's own program where that is installed", async () => {
  const { code, output } = await run(['admin', '--help'], `${bin}:${process.env.PATH}`)
  expect(output).toContain('create-organisation')
  expect(code).toBe(0)
})

test('purser dev runs the program of the local deployment where that is installed', async () => {
  const { code, output } = await run(['dev', 'fund', '--help'], `${bin}:${process.env.PATH}`)
  expect(output).toContain('usage: purser dev fund <address>')
  expect(code).toBe(0)
  expect(await run(['dev', 'fund'], '/nowhere')).toMatchObject({
    code: 2,
    output: expect.stringContaining('purser-dev'),
  })
})

test('purser admin says where its commands are when the server is not installed', async () => {
  expect(await run(['admin', 'create-key'], '/nowhere')).toMatchObject({
    code: 2,
    output: expect.stringContaining('purser-admin'),
  })
})
