import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { createInterface } from 'node:readline'
import type { S3Settings } from '../../src/files/index.ts'

const require = createRequire(import.meta.url)

/**
 * s3rver, an independent S3 server, in a separate process. It has one access key, cannot list or abort uploads, and
 * treats `bytes=0-0` as the whole object.
 */
export async function startS3(): Promise<{ readonly settings: S3Settings; stop(): Promise<void> }> {
  const directory = mkdtempSync(path.join(tmpdir(), 'purser-s3-'))
  const script = path.join(path.dirname(require.resolve('s3rver/package.json')), 'bin', 's3rver.js')
  // It encrypts its list tokens with DES, which OpenSSL has moved to its legacy provider.
  const args = [
    '--openssl-legacy-provider',
    script,
    '-d',
    directory,
    '-a',
    '127.0.0.1',
    '-p',
    '0',
    '--configure-bucket',
    'purser-files',
  ]
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'ignore'] })
  const ended = new Promise<void>((resolve) => child.once('close', () => resolve()))
  const lines = createInterface(child.stdout)
  const endpoint = await new Promise<string>((resolve, reject) => {
    lines.on('line', (line) => {
      const port = /listening on 127\.0\.0\.1:(\d+)/.exec(line)?.[1]
      if (port !== undefined) resolve(`http://127.0.0.1:${port}`)
    })
    void ended.then(() => reject(new Error('s3rver ended before it listened')))
  })
  return {
    settings: {
      endpoint,
      bucket: 'purser-files',
      region: 'us-east-1',
      accessKeyId: 'S3RVER',
      secretAccessKey: 'S3RVER',
    },
    async stop() {
      child.kill('SIGKILL')
      await ended
      rmSync(directory, { recursive: true, force: true })
    },
  }
}
