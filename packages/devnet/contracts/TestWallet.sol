// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

/// A contract account with one owner, for tests of EIP-1271 (the account exists) and EIP-6492 (it does not yet).
contract TestWallet {
    address public immutable owner;

    constructor(address owner_) {
        owner = owner_;
    }

    receive() external payable {}

    function isValidSignature(bytes32 digest, bytes calldata signature) external view returns (bytes4) {
        if (signature.length != 65) return 0xffffffff;
        bytes32 r = bytes32(signature[0:32]);
        bytes32 s = bytes32(signature[32:64]);
        address signer = ecrecover(digest, uint8(signature[64]), r, s);
        return signer != address(0) && signer == owner ? this.isValidSignature.selector : bytes4(0xffffffff);
    }

    function execute(address to, uint256 value, bytes calldata data) external payable returns (bytes memory) {
        require(msg.sender == owner, "TestWallet: caller is not the owner");
        (bool success, bytes memory answer) = to.call{value: value}(data);
        require(success, "TestWallet: call failed");
        return answer;
    }
}

/// Makes such accounts at addresses that are known before. Making one that exists answers it again.
contract TestWalletFactory {
    function createWallet(address owner, uint256 salt) external returns (address wallet) {
        wallet = walletAddress(owner, salt);
        if (wallet.code.length == 0) new TestWallet{salt: bytes32(salt)}(owner);
    }

    function walletAddress(address owner, uint256 salt) public view returns (address) {
        bytes32 codeHash = keccak256(abi.encodePacked(type(TestWallet).creationCode, abi.encode(owner)));
        return address(uint160(uint256(keccak256(abi.encodePacked(hex"ff", address(this), salt, codeHash)))));
    }
}
