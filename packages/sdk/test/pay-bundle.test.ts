import { build } from 'esbuild'
import { expect, test } from 'vitest'

test.each([
  ['pay', 'createPayingFetch'],
  ['agents', 'createPayingTools'],
])('%s is bundled for browsers with nothing of Node and nothing left to import', async (folder, name) => {
  const { outputFiles, metafile } = await build({
    entryPoints: [new URL(`../src/${folder}/index.ts`, import.meta.url).pathname],
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
  expect(output?.exports).toContain(name)
  const fromElsewhere = Object.keys(metafile.inputs).filter((file) => file.includes('node_modules'))
  expect(fromElsewhere.filter((file) => !file.includes('node_modules/@noble/hashes/'))).toEqual([])
  expect(outputFiles[0]?.text).not.toMatch(/\b(?:require|process|Buffer)\b/)
})
