import { expect, test } from 'vitest'
import { ownHosts } from './own-hosts.ts'

test('the hosts of nodes, partners, storages, databases, key services, mail and the sanctions list are the deployment’s own', () => {
  const s3 = { bucket: 'Files', region: 'eu', accessKeyId: 'a', secretAccessKey: 's' }
  const hosts = ownHosts({
    databaseUrl: 'postgres://purser:word@db-1.example.com:5432,DB-2.example.com:5432/purser',
    databaseDirectUrl: 'postgres:///purser?host=db-3.example.com&port=5432',
    files: { s3: { ...s3, endpoint: 'https://s3.example.com:9000' } },
    witness: { directory: '/marks' },
    keyEncryption: { awsKms: { keyArn: 'arn', endpoint: 'https://kms.example.com' } },
    keyEncryptionAlso: [{ file: '/kek' }],
    partners: { lifi: { apiKey: 'key', baseUrl: 'https://swaps.example.com/v1' } },
    rpcUrls: { base: ['https://RPC.example.com/v2/key', 'http://[2001:db8::1]:8545'], polygon: [] },
    sanctionsListUrl: 'https://lists.example.com/sdn.xml',
    signIn: { isSignUpOpen: false, issuers: [], smtp: { url: 'smtps://u:w@mail.example.com:465', from: 'a@b.c' } },
  })
  expect([...hosts].sort()).toEqual([
    '2001:db8::1',
    'db-1.example.com',
    'db-2.example.com',
    'db-3.example.com',
    'files.s3.example.com',
    'kms.example.com',
    'lists.example.com',
    'mail.example.com',
    'rpc.example.com',
    's3.example.com',
    'swaps.example.com',
  ])
})

test('a database behind a socket has no host', () => {
  const config = { files: { directory: '/files' }, keyEncryption: { base64: '' }, rpcUrls: {} }
  expect([...ownHosts({ ...config, databaseUrl: 'postgres:///purser?host=/var/run/postgresql' })]).toEqual([])
})
