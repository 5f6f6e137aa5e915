// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

interface IToken {
    function mint(address to, uint256 amount) external returns (bool);
    function transferFrom(address from, address to, uint256 amount) external returns (bool);
}

/// Looks to a caller as LI.FI's diamond does for one way to swap and one to bridge (lifinance/contracts, GenericSwapFacetV3 and the
/// facets of bridges): the same functions, the same money taken and the same refusal of too little. In place of an exchange it makes what
/// it pays out: as much as the swap's own call data says.
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

    struct AcrossV3Data {
        address receiverAddress;
        uint256 outputAmount;
    }

    error CumulativeSlippageTooHigh(uint256 minAmount, uint256 receivedAmount);

    event LiFiTransferStarted(bytes32 indexed transactionId, uint256 destinationChainId, address receiver, uint256 minAmount);

    receive() external payable {}

    function swapTokensSingleV3ERC20ToERC20(
        bytes32, string calldata, string calldata, address receiver, uint256 minAmount, SwapData calldata swap
    ) external {
        _take(swap);
        require(IToken(swap.receivingAssetId).mint(receiver, _out(swap, minAmount)), "mint failed");
    }

    function swapTokensSingleV3ERC20ToNative(
        bytes32, string calldata, string calldata, address payable receiver, uint256 minAmount, SwapData calldata swap
    ) external {
        _take(swap);
        (bool ok,) = receiver.call{value: _out(swap, minAmount)}("");
        require(ok, "NativeTransferFailed");
    }

    function startBridgeTokensViaAcrossV3(BridgeData calldata data, AcrossV3Data calldata) external payable {
        require(!data.hasSourceSwaps && !data.hasDestinationCall, "InformationMismatch");
        if (data.sendingAssetId == address(0)) require(msg.value == data.minAmount, "InvalidAmount");
        else require(IToken(data.sendingAssetId).transferFrom(msg.sender, address(this), data.minAmount), "transferFrom failed");
        emit LiFiTransferStarted(data.transactionId, data.destinationChainId, data.receiver, data.minAmount);
    }

    function _take(SwapData calldata swap) private {
        require(IToken(swap.sendingAssetId).transferFrom(msg.sender, address(this), swap.fromAmount), "transferFrom failed");
    }

    function _out(SwapData calldata swap, uint256 minAmount) private pure returns (uint256 out) {
        out = abi.decode(swap.callData, (uint256));
        if (out < minAmount) revert CumulativeSlippageTooHigh(minAmount, out);
    }
}
