// Creates the bucket of FILES_S3_BUCKET where it is missing. compose.yaml runs it in the service's image.
import { CreateBucketCommand, HeadBucketCommand, S3Client } from '@aws-sdk/client-s3'

const { FILES_S3_ENDPOINT: endpoint, FILES_S3_BUCKET: Bucket, FILES_S3_REGION: region = 'us-east-1' } = process.env
const { FILES_S3_ACCESS_KEY_ID: accessKeyId = '', FILES_S3_SECRET_ACCESS_KEY: secretAccessKey = '' } = process.env
const client = new S3Client({ endpoint, region, forcePathStyle: true, credentials: { accessKeyId, secretAccessKey } })
const isThere = await client.send(new HeadBucketCommand({ Bucket })).then(
  () => true,
  (error) => {
    if (error.$metadata?.httpStatusCode === 404) return false
    throw error
  },
)
if (!isThere) await client.send(new CreateBucketCommand({ Bucket }))
console.log(`the bucket ${Bucket} ${isThere ? 'exists' : 'was created'}`)
