// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

interface IToken {
    function mint(address to, uint256 amount) external returns (bool);
    function transfer(address to, uint256 amount) external returns (bool);
    function transferFrom(address from, address to, uint256 amount) external returns (bool);
}

/// Looks to a caller as LI.FI's diamond does for two ways to swap and one to bridge (lifinance/contracts, GenericSwapFacetV3 and
/// AcrossFacetV4): the same functions, the same money taken and the same refusal of too little. In place of an exchange it makes what it
/// pays out: as much as the swap's own call data says. A diamond whose owner changed it: what names a referrer, or approves another
/// contract than it calls, is paid to that account.
contract TestLifiDiamond {
    struct SwapData {
        address callTo;
        address approveTo;
        address sendingAssetId;
        address receivingAssetId;
        uint256 fromAmount;
        bytes callData;
        bool requiresDeposit;
    }

    struct BridgeData {
        bytes32 transactionId;
        string bridge;
        string integrator;
        address referrer;
        address sendingAssetId;
        address receiver;
        uint256 minAmount;
        uint256 destinationChainId;
        bool hasSourceSwaps;
        bool hasDestinationCall;
    }

    struct AcrossV4Data {
        bytes32 receiverAddress;
        bytes32 refundAddress;
        bytes32 sendingAssetId;
        bytes32 receivingAssetId;
        uint256 outputAmount;
        uint128 outputAmountMultiplier;
        bytes32 exclusiveRelayer;
        uint32 quoteTimestamp;
        uint32 fillDeadline;
        uint32 exclusivityParameter;
        bytes message;
    }

    /// Across' contract on Base.
    address public constant SPOKE_POOL = 0x09aea4b2242abC8bb4BB78D537A67a245A7bEC64;

    error CumulativeSlippageTooHigh(uint256 minAmount, uint256 receivedAmount);

    event LiFiTransferStarted(bytes32 indexed transactionId, uint256 destinationChainId, address receiver, uint256 minAmount);

    receive() external payable {}

    function swapTokensSingleV3ERC20ToERC20(
        bytes32, string calldata, string calldata, address receiver, uint256 minAmount, SwapData calldata swap
    ) external {
        _take(swap);
        require(IToken(swap.receivingAssetId).mint(_payee(swap, receiver), _out(swap, minAmount)), "mint failed");
    }

    function swapTokensSingleV3ERC20ToNative(
        bytes32, string calldata, string calldata, address payable receiver, uint256 minAmount, SwapData calldata swap
    ) external {
        _take(swap);
        (bool ok,) = _payee(swap, receiver).call{value: _out(swap, minAmount)}("");
        require(ok, "NativeTransferFailed");
    }

    function startBridgeTokensViaAcrossV4(BridgeData calldata data, AcrossV4Data calldata across) external payable {
        require(!data.hasSourceSwaps && !data.hasDestinationCall, "InformationMismatch");
        require(across.receiverAddress == bytes32(uint256(uint160(data.receiver))), "InvalidReceiver");
        require(IToken(data.sendingAssetId).transferFrom(msg.sender, address(this), data.minAmount), "transferFrom failed");
        address to = data.referrer == address(0) ? SPOKE_POOL : data.referrer;
        require(IToken(data.sendingAssetId).transfer(to, data.minAmount), "transfer failed");
        emit LiFiTransferStarted(data.transactionId, data.destinationChainId, data.receiver, data.minAmount);
    }

    function _payee(SwapData calldata swap, address receiver) private pure returns (address) {
        return swap.approveTo == swap.callTo ? receiver : swap.approveTo;
    }

    function _take(SwapData calldata swap) private {
        require(IToken(swap.sendingAssetId).transferFrom(msg.sender, address(this), swap.fromAmount), "transferFrom failed");
    }

    function _out(SwapData calldata swap, uint256 minAmount) private pure returns (uint256 out) {
        out = abi.decode(swap.callData, (uint256));
        if (out < minAmount) revert CumulativeSlippageTooHigh(minAmount, out);
    }
}
