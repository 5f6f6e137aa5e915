import { build } from 'esbuild'
import { expect, test } from 'vitest'

test('the client is bundled for browsers with nothing left to import', async () => {
  const { outputFiles, metafile } = await build({
    entryPoints: [new URL('../src/index.ts', import.meta.url).pathname],
    bundle: true,
    format: 'esm',
    platform: 'browser',
    minify: true,
    write: false,
    metafile: true,
    outdir: '/bundle',
  })
  const [output, ...others] = Object.values(metafile.outputs)
  expect(others).toEqual([])
  expect(output?.imports).toEqual([])
  expect(output?.exports).toContain('createPurser')
  expect(Object.keys(metafile.inputs).filter((file) => file.includes('node_modules'))).toEqual([])
  const text = outputFiles[0]?.text ?? ''
  expect(text).toContain('idempotency-key')
  expect(text).not.toMatch(/\b(?:require|process|Buffer)\b/)
})
